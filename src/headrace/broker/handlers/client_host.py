"""A member's host as Kafka writes it down: Java puts a slash before an address without a name."""

from headrace.broker.state import RequestContext


def client_host(context: RequestContext) -> str:
    """Where the request came from."""
    return f"/{context.client_host}"
