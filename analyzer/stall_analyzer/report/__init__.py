"""The report: one versioned JSON document (schema.json), and the views of it."""
