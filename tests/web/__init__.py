"""Checks of the page's scripts by ESLint, prettier and TypeScript, and the description of the port that they call."""
