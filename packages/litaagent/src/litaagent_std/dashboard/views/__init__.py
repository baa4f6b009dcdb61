"""What there is to see: each module turns data into pages, and knows nothing of web servers or files of HTML."""
