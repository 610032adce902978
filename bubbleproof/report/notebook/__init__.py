"""The viewer of our pages as a notebook's widget (``anywidget``, the extra ``notebook``)."""
