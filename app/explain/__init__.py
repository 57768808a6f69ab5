"""Why a pod fits where it fits: explanations, the last decisions, their replay, and cases for the golden format.

It asks the same plugins as the verbs. No HTTP is here, and no text for a terminal.
"""
