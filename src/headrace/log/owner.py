"""Whose data directory it is: node and cluster, as `meta.properties` has them."""

from pathlib import Path
from uuid import uuid4

from headrace.errors import ConfigError
from headrace.log import checkpoints


def check_owner(data_dir: Path, node_id: int, cluster_id: str) -> tuple[str, bool]:
    """(the cluster's id, whether nobody used the directory before); `cluster_id` may be empty."""
    path = data_dir / checkpoints.META_PROPERTIES
    found = checkpoints.read_properties(path)
    if found is None:
        cluster_id = cluster_id or checkpoints.encode_id(uuid4())
        values = {
            "node.id": str(node_id),
            "directory.id": checkpoints.encode_id(uuid4()),
            "version": "1",
            "cluster.id": cluster_id,
        }
        checkpoints.write_properties(path, values)
        return cluster_id, True
    found_cluster = found.get("cluster.id", "")
    if cluster_id and found_cluster != cluster_id:
        wanted = f"{path} belongs to cluster {found_cluster!r}; use that id or another directory"
        raise ConfigError("cluster.id", cluster_id, wanted)
    found_node = found.get("node.id", str(node_id))
    if found_node != str(node_id):
        wanted = f"{path} belongs to node {found_node}; use that id or another directory"
        raise ConfigError("node.id", node_id, wanted)
    return found_cluster, False
