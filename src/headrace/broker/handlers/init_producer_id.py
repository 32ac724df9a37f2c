"""InitProducerId (22).

v2  flexible encoding
v3  producer_id and producer_epoch in the request, to continue a transactional producer (KIP-360)
v4  PRODUCER_FENCED as an error
v5  TRANSACTION_ABORTABLE as an error (KIP-890)
"""

from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from headrace.broker.error_codes import code_for
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.errors import HeadraceError


async def handle(
    request: InitProducerIdRequest, broker: BrokerState, context: RequestContext
) -> InitProducerIdResponse:
    """Give an idempotent producer an id of its own.

    It is a new one each time, whatever id the request names: only a transactional id makes a
    producer the same one again, and there is no coordinator for those yet.
    """
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refusal(ErrorCode.invalid_request)
    if request.transactional_id is not None:
        is_empty = request.transactional_id == ""
        return _refusal(
            ErrorCode.invalid_request if is_empty else ErrorCode.coordinator_not_available
        )
    try:
        producer_id = await broker.topics.producer_ids.next()
    except HeadraceError as error:
        return _refusal(code_for(error))
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(0),
    )


def _refusal(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE, error_code=error_code, producer_epoch=i16(-1)
    )
