"""The plan and executor of a request: the strategies of all families, the planner, its cache, and tuning."""
