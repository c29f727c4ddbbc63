"""Links from the pages of docs/ to other files of the repository become links to the forge, where these files are."""

import logging
import os
import posixpath
import re

LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]*)(#[^)\s]*)?\)")
# Warnings of this logger make a strict build fail.
log = logging.getLogger("mkdocs.hooks.links")


def on_page_markdown(markdown, page, config, files):
    root = os.path.dirname(config.config_file_path)
    folder = posixpath.dirname("docs/" + page.file.src_uri)

    def outside(match):
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        if not os.path.exists(os.path.join(root, path)):
            log.warning("%s links to %s, which does not exist", page.file.src_uri, path)
        if path.startswith("docs/") and os.path.isfile(os.path.join(root, path)):
            return match[0]
        return f"]({config.repo_url}/blob/main/{path}{match[2] or ''})"

    return LINK.sub(outside, markdown)
