"""The pipelines that come with headrace, one module each."""
