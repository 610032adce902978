"""Pictures and pages for people: Gantt charts, memory curves, comparison and verdict tables.

``timeline`` turns a problem and a schedule into what is to be seen, free of any drawing library;
``gantt`` draws it to SVG or PNG, ``page`` writes one HTML page and ``text`` prints a grid. Drawing
needs the ``report`` extra; importing this package loads neither matplotlib nor plotly.
"""
