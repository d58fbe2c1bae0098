"""How a REST API is read: page by page, records as the API writes them."""
