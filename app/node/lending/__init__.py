"""The lender's side: rules, requests to open stages, uploads, and sleep."""
