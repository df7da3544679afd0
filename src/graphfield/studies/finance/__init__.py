"""Networks of stocks by market condition: from prices to residual returns, graphs, figures and tables.

>>> from graphfield.studies import finance
>>> finance.finance_study, finance.residual_returns  # doctest: +ELLIPSIS
(<function finance_study at ...>, <function residual_returns at ...>)
"""

from graphfield.studies.finance.comparison import HeldOutComparison, compare_with_static
from graphfield.studies.finance.returns import daily_returns, residual_returns, rolling_beta
from graphfield.studies.finance.study import FinanceStudy, finance_study
from graphfield.studies.finance.tables import dated_table, read_dated, read_sectors

__all__ = [
    "FinanceStudy",
    "HeldOutComparison",
    "compare_with_static",
    "daily_returns",
    "dated_table",
    "finance_study",
    "read_dated",
    "read_sectors",
    "residual_returns",
    "rolling_beta",
]
