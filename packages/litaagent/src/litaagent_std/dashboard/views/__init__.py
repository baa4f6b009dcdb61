"""Views: each module turns data into pages (a template and its context); none knows of the server or of HTML."""
