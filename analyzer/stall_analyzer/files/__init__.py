"""Everything that touches a disk or an object store, and the bytes that are framed there."""
