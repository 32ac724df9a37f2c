"""The classic consumer group: members join, a leader assigns, everyone is told."""
