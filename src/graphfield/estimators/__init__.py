"""The user's objects: validate -> encode -> train or solve -> wrap. Import them from graphfield."""
