"""The site, built by one command from the pages of ``docs/`` and from the package itself.

    python -m website FOLDER

``sections`` says where each page stands, ``staged_links`` what a link of the repository is in the
site, ``staging`` writes the source tree, ``api_pages`` a page a public name, ``command_pages`` a
page a command, ``theorem_pages`` that of the theorems; ``site_checks`` reads what was built.
"""
