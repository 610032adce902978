"""Pictures and pages for people: Gantt charts, memory curves, comparison and verdict tables.

``timeline`` turns a problem and a schedule into what is to be seen, free of any drawing library;
``gantt`` draws it to SVG, PDF or PNG, ``page`` writes one HTML page whose ``viewer`` draws it, and
``text`` prints a grid. Pictures need the ``report`` extra, pages do not; importing this package
loads no matplotlib.
"""
