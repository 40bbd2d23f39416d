"""Where TensorBoard enters. It cannot fail.

TensorBoard imports this module before anything else of ours and stops if it cannot, so nothing is
imported up here but TensorBoard itself. Whatever is wrong with the rest becomes a tab that says so.
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
            logger.exception("The Stall tab cannot even say so")
            return None
