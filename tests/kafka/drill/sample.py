"""A report as a drill of one scenario would give it."""

from headrace.kafka.drill.acks import Gap, Second, Wait
from headrace.kafka.drill.election import Timeouts, wait_limit
from headrace.kafka.drill.ledger import Balance, LiveReading
from headrace.kafka.drill.plan import Plan, Scenario
from headrace.kafka.drill.report import ClusterFacts, DrillReport, Resync, ScenarioReport
from headrace.kafka.drill.timeline import Event, EventKind
from headrace.kafka.drill.verdict import judge

TIMEOUTS = Timeouts(9.0, 2.0, 1.0, 1.0)
GOOD = Balance(100, 100, 0, 100, 0, 0, 0, 0, 0)
READ = LiveReading(read=100, missed=0, vanished=0, reordered=0, read_again=2)


def scenario_report(
    scenario: Scenario = Scenario.LEADER,
    *,
    waited_s: float = 9.1,
    undisturbed_s: float = 0.02,
    others_cpu_share: float | None = 0.1,
    resync: Resync | None = None,
) -> ScenarioReport:
    return ScenarioReport(
        scenario=scenario,
        title="leader killed",
        nodes=(1,),
        start_s=1.0,
        fault_s=3.0,
        end_s=30.0,
        undisturbed_s=undisturbed_s,
        others_cpu_share=others_cpu_share,
        longest_wait=Wait(12.1, waited_s),
        longest_gap=Gap(3.0, 12.0),
        limit=wait_limit(
            TIMEOUTS, has_broker_out=True, has_controller_out=False, undisturbed_s=0.02
        ),
        acknowledged=100,
        failed=0,
        events=(
            Event(1.0, EventKind.SCENARIO, "leader killed"),
            Event(3.0, EventKind.FAULT, "node 1 killed", 1),
            Event(12.0, EventKind.LEADER, "node 2 leads partition 0 (was node 1)", 2),
            Event(20.0, EventKind.NODE, "node 1 started", 1),
        ),
        resync=resync,
    )


def drill_report(
    *scenarios: ScenarioReport, balance: Balance = GOOD, live: LiveReading = READ
) -> DrillReport:
    scenarios = scenarios or (scenario_report(),)
    return DrillReport(
        cluster=ClusterFacts("default", "4.3.1", 3, 3, True, TIMEOUTS),
        plan=Plan(),
        topic="headrace-drill",
        started_at="2026-11-16T14:00:00Z",
        seconds=30.0,
        scenarios=scenarios,
        course=tuple(Second(at_s, 0 if 3 < at_s < 12 else 1000, 0.01) for at_s in range(30)),
        balance=balance,
        live=live,
        checks=judge(balance, live, scenarios),
    )
