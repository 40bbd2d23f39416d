"""Everything that touches a disk or an object store, and the framing of records there."""
