"""Who a partner is: running statistics of what it offers and answers, and a network that names its type.

=============  ======================================================================================================
module         what it holds
=============  ======================================================================================================
``signature``  ``Signatures``, statistics of partners on one side, from live events or from a record
``types``      ``PartnerTypes``, the trained network with a floor under every type, and the weights that come with it
=============  ======================================================================================================

Nothing here reads an id: a partner is what it did. ``lita train --phases partner`` trains the network;
``partner_types.npz`` beside this file holds the weights that come with the package, ``partner_types.card.json`` how
they were made.
"""

from .signature import FEATURES, Frames, Signatures, signature_digest
from .types import PartnerTypes, shipped_types

__all__ = ["FEATURES", "Frames", "PartnerTypes", "Signatures", "shipped_types", "signature_digest"]
