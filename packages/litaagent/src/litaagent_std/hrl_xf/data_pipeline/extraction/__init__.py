"""From the record of one world to the arrays of its samples."""
