"""The v2 record batch as bytes: headers, records, codecs, checks. No I/O."""
