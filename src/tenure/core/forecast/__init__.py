"""Says what will happen to nodes in the next days, and when it may not, without playing the cluster.

``calendar`` has the changes of windows, ``candidates`` from when on which node may be disrupted,
``begun`` what is under way and ``queues`` what waits; ``schedule`` walks from change to change and
starts what the gates let start. ``rotation`` counts what does not start in time, and ``moments`` lists
what else ends. ``waiting`` says what blocks longest those that do not start. ``forecast`` puts them together.

May import: core, core.disrupt, core.gates, core.health, core.marks, core.protect, core.provision, core.reboot,
core.terminate, core.windows, errors, model.
Start reading: forecast.py, then schedule.py.
"""
