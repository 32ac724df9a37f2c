"""Consumer groups full of members that only heartbeat: joins them, and writes their heartbeats.

Members are joined over connections of their own, as clients do it, until all of a group are in
one generation. The connections are then closed: to a coordinator a member is its id.
"""

import asyncio
import itertools
import struct
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId
from kio.serial import entity_reader
from kio.static.primitive import i8, i32, i32Timedelta
from kio.static.protocol import Entity

from bench.errors import BenchError
from bench.requests import write_requests
from headrace.client.wire import encode_request

R = TypeVar("R", bound=Entity)

# Longer than any pause between two measurements: nobody may drop out in between.
SESSION = i32Timedelta.parse(timedelta(minutes=10))
_JOIN_SECONDS = 120
_GROUPS_AT_ONCE = 50
_BEAT_SECONDS = 0.05
_PROTOCOL = "range"
# A subscription to one topic, version 0, without user data.
_SUBSCRIPTION = struct.pack(">hih5si", 0, 1, 5, b"bench", -1)
_REJOIN = {
    ErrorCode.rebalance_in_progress,
    ErrorCode.illegal_generation,
    ErrorCode.member_id_required,
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
}
_runs = itertools.count()


@dataclass(slots=True)
class _Member:
    group_id: str
    session: i32Timedelta
    member_id: str = ""
    generation_id: int = -1  # of the last sync; -1 while it has none


@dataclass(slots=True)
class _Group:
    members: list[_Member] = field(default_factory=list)

    @property
    def is_settled(self) -> bool:
        generations = {member.generation_id for member in self.members}
        return len(generations) == 1 and -1 not in generations


def write_members(path: Path, port: int, *, groups: int, members: int) -> None:
    """Join `groups` groups of `members` each, and write a heartbeat request for every member."""
    beats = join_members(port, groups=groups, members=members)
    write_requests(path, ((frame, 0, 0, 0) for frame in beats))


def join_members(
    port: int, *, groups: int, members: int, session: i32Timedelta = SESSION
) -> list[bytes]:
    """Join `groups` groups of `members` each; return a heartbeat request for every member."""
    run = next(_runs)
    joined = [
        _Group([_Member(f"bench-{run}-{number}", session) for _ in range(members)])
        for number in range(groups)
    ]
    try:
        asyncio.run(asyncio.wait_for(_join_all(port, joined), _JOIN_SECONDS))
    except TimeoutError:
        settled = sum(group.is_settled for group in joined)
        raise BenchError(
            f"only {settled} of {groups} groups came together within {_JOIN_SECONDS} s"
        ) from None
    return [encode_request(_heartbeat(member)) for group in joined for member in group.members]


async def _join_all(port: int, groups: list[_Group]) -> None:
    await _find_coordinator(port, groups[0].members[0].group_id)
    at_once = asyncio.Semaphore(_GROUPS_AT_ONCE)

    async def join(group: _Group) -> None:
        async with at_once:
            await asyncio.gather(*(_take_part(port, group, one) for one in group.members))

    await asyncio.gather(*(join(group) for group in groups))


async def _find_coordinator(port: int, group_id: str) -> None:
    """Ask until there is one: the first question makes Kafka create `__consumer_offsets`."""
    request = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(group_id,))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with closing(writer):
        while True:
            found = (await _ask(reader, writer, request, FindCoordinatorResponse)).coordinators
            if found[0].error_code is ErrorCode.none:
                return
            await asyncio.sleep(_BEAT_SECONDS)


async def _take_part(port: int, group: _Group, member: _Member) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with closing(writer):
        while not group.is_settled:
            if member.generation_id < 0:
                await _join(reader, writer, member)
                continue
            code = (await _ask(reader, writer, _heartbeat(member), HeartbeatResponse)).error_code
            if code is not ErrorCode.none:
                _check(code)
                member.generation_id = -1
            else:
                await asyncio.sleep(_BEAT_SECONDS)


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, member: _Member
) -> None:
    protocol = JoinGroupRequestProtocol(name=_PROTOCOL, metadata=_SUBSCRIPTION)
    request = JoinGroupRequest(
        group_id=GroupId(member.group_id),
        session_timeout=member.session,
        rebalance_timeout=member.session,
        member_id=member.member_id,
        protocol_type="consumer",
        protocols=(protocol,),
    )
    joined = await _ask(reader, writer, request, JoinGroupResponse)
    member.member_id = joined.member_id or member.member_id
    if joined.error_code is not ErrorCode.none:
        _check(joined.error_code)
        if joined.error_code is not ErrorCode.member_id_required:
            await asyncio.sleep(_BEAT_SECONDS)
        return
    everybody = tuple(
        SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"")
        for one in joined.members
    )
    sync = SyncGroupRequest(
        group_id=GroupId(member.group_id),
        generation_id=joined.generation_id,
        member_id=member.member_id,
        protocol_type="consumer",
        protocol_name=_PROTOCOL,
        assignments=everybody,
    )
    code = (await _ask(reader, writer, sync, SyncGroupResponse)).error_code
    if code is ErrorCode.none:
        member.generation_id = joined.generation_id
    else:
        _check(code)


def _check(code: ErrorCode) -> None:
    if code not in _REJOIN:
        raise BenchError(f"a member could not join its group: {code.name}")


def _heartbeat(member: _Member) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=GroupId(member.group_id),
        generation_id=i32(member.generation_id),
        member_id=member.member_id,
        group_instance_id=None,
    )


async def _ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: Any,
    response_type: type[R],
) -> R:
    writer.write(encode_request(request))
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    answer = await reader.readexactly(size)
    response: R
    # Flexible versions: a correlation id and no tagged fields come first.
    response, _ = entity_reader(response_type)(answer, 5)
    return response
