"""The states of a classic group, by Kafka's names, and which follow which.

    Empty ──▶ PreparingRebalance ──▶ CompletingRebalance ──▶ Stable
      ▲              │    ▲                  │                  │
      └──────────────┘    └──────────────────┴──────────────────┘

Any of them ends in Dead.
"""

EMPTY = "Empty"  # no members; committed offsets may be left
PREPARING_REBALANCE = "PreparingRebalance"  # waits for every member to join
COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
STABLE = "Stable"  # everyone may ask for its assignment
DEAD = "Dead"
