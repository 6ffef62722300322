//! JSON Schemas of tools: shown compactly, checked, repaired.
