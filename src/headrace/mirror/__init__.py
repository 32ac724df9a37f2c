"""Topics, messages and group positions of one bus brought to another, exactly once.

Both ends are asked through librdkafka alone: neither needs to be headrace's own broker.

Invariant: the n-th visible record of a source partition is record n of the target partition, and
nobody else writes there. So the end offset of the target *is* the count of what has arrived: after
any end, a kill included, the mirror goes on behind it and nothing is lost or repeated.
"""
