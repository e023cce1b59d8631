"""
Your table in a few lines
=========================

A table of numbers with a column of labels needs no more than scikit-learn's classifiers do.
"""

import pandas as pd
from sklearn.datasets import load_wine
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clailearn import CLaIClassifier

# %%
# Read a table; this one could come from ``pd.read_csv``. Numbers of different units are scaled first.
table: pd.DataFrame = load_wine(as_frame=True).frame
train, test = train_test_split(table, test_size=0.4, stratify=table["target"], random_state=0)
model = make_pipeline(StandardScaler(), CLaIClassifier(random_state=0))
model.fit(train.drop(columns="target"), train["target"])

# %%
# How often is it right, how sure is it, and which rows of the training table does it name for a new one?
columns = test.drop(columns="target")
accuracy = model.score(columns, test["target"])
print(f"accuracy {accuracy:.3f}")
print(model.predict_proba(columns[:2]).round(3))
(votes,) = model[-1].votes(model[:-1].transform(columns[:1]), k=2)
print(train.iloc[[vote.item for vote in votes.support]].iloc[:, :4])
ConfusionMatrixDisplay.from_predictions(test["target"], model.predict(columns), colorbar=False)
