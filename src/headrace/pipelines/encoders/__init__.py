"""How fields become bytes: one module a format. The way back from `decoders`."""

from headrace.pipelines.encoders.encoder import Encoder
from headrace.pipelines.encoders.parse import parse_encoder

__all__ = ["Encoder", "parse_encoder"]
