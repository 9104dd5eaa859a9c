"""One page about a run that opens anywhere: verdict, ports with bands, levels, timeline, tables, facts.

In:  a Run
Out: an HTML file that needs nothing else
"""

from hocket.report.page import report_page, write_report

__all__ = ["report_page", "write_report"]
