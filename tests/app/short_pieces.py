"""Long work whose pieces are all too long, so that a test counts how often it gives way."""

from app.process.long_work import LongWork


class ShortPieces(LongWork):
    """Work that is over after every step."""

    gave_way = 0

    @property
    def over(self) -> bool:
        return True

    async def checkpoint(self) -> None:
        self.gave_way += 1
