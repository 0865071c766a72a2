"""The connection between the host of a pipeline and its stages: host-side clients, lender-side servers, and links."""
