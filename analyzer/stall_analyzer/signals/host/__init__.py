"""Host: Python, callbacks, dispatch and threads."""
