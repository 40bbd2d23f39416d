"""TensorBoard's entry point into the plugin. It must not fail.

TensorBoard imports this module before the rest of the package, and stops if it cannot. So this file
imports only TensorBoard at its top, and any other failure becomes a tab that says what is wrong.
"""

from __future__ import annotations

import logging

from tensorboard.plugins import base_plugin

logger = logging.getLogger("tensorboard")


class StallLoader(base_plugin.TBLoader):
    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        try:
            from tb_stall_plugin.plugin import StallPlugin  # noqa: PLC0415

            return StallPlugin(context)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            logger.exception("The Stall tab could not be loaded; the other tabs are not affected")
        try:
            from tb_stall_plugin.stand_in import StandIn  # noqa: PLC0415

            return StandIn(
                f"The Stall tab could not be loaded. {reason}\n\n"
                "TensorBoard and its other tabs are not affected. Installing the package again may "
                "help:\npip install --force-reinstall tensorboard-plugin-stall"
            )
        except Exception:
            logger.exception("The Stall tab cannot even show why it could not be loaded")
            return None
