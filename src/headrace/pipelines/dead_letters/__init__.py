"""Records that could not be decoded: written to a topic, listed, sent again.

A dead letter is the record as it was (key, value, headers, byte for byte) with headers of ours
that say where it came from and what is wrong with it. They are written at least once; whoever
lists or re-submits them takes each `Source` once.
"""
