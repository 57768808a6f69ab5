"""The sources of the documentation site: the pages with links that lead there, and the reference made from the code."""
