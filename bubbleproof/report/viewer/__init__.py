"""The viewer of our pages: schedules on a canvas, by scripts of our own that load nothing.

``schedule_data`` turns a schedule into columns and packs them for a page, and ``viewer_parts``
writes the elements of a page and its script, which is the files of ``script/`` one after another.
What is drawn keeps one rule at every zoom: the area of a colour equals its share of time
(``script/cells.js``).
"""
