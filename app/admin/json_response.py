"""The response of the routes of the admin port that return a struct, or any other value with a JSON form."""

from fastapi import Response

from app.json_text import encode


class JsonResponse(Response):
    """A value as JSON. FastAPI would first copy the value by pydantic, which does not support msgspec structs."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the body."""
        return encode(content)
