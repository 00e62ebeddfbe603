"""Prints what PyPI's hdrhistogram reads from a histogram interval log, as JSON by tag."""
import json
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

HOUR_US = 3_600_000_000
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, HOUR_US, 3))
totals, intervals, end_ms = {}, {}, {}
while (one := reader.get_next_interval_histogram()) is not None:
    step = one.get_tag()
    totals.setdefault(step, HdrHistogram(1, HOUR_US, 3)).add(one)
    intervals[step] = intervals.get(step, 0) + 1
    end_ms[step] = one.get_end_time_stamp()
print(
    json.dumps(
        {
            step: {
                "intervals": intervals[step],
                "end_s": end_ms[step] / 1000,
                "count": total.get_total_count(),
                "p50": total.get_value_at_percentile(50),
                "p99": total.get_value_at_percentile(99),
                "max": total.get_value_at_percentile(100),
            }
            for step, total in totals.items()
        }
    )
)
