"""Where rows go: lake, SQL table, topic, console."""
