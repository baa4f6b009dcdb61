"""The environment checker: finds mistakes that training shows only as a policy that does not learn."""
