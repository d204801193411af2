"""Own the static site: pages of what the registry holds, each one file that needs no network, no script, no other file.

It computes no score. Templates stand in `templates/`; pictures are inline SVG, coloured by the page's style sheet.
"""

from cxrspec.report.site.build import shown_references, site_pages, write_site

__all__ = ["shown_references", "site_pages", "write_site"]
