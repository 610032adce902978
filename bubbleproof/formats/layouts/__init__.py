"""The keys of files, their types and ranges, as pydantic reads them."""
