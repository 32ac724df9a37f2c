"""Consumer groups with every real client: member processes, the group they form, the scenarios."""
