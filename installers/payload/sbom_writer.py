"""Writes a CycloneDX SBOM from a description on standard input. Runs in the environment of `make audit`."""

from __future__ import annotations

import datetime as dt
import json
import sys
import uuid

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

NAMESPACE = uuid.UUID("5b0f3c1e-6a0e-5f0b-9f57-0c6a4d1c9a11")  # of serial numbers, so that each payload has its own


def main() -> None:
    """Read the description, and print the SBOM."""
    order = json.load(sys.stdin)
    made = Bom(serial_number=uuid.uuid5(NAMESPACE, order["identity"]))
    made.metadata.timestamp = dt.datetime.fromtimestamp(order["seconds"], dt.UTC)
    made.metadata.component = Component(
        name="Poolhouse", version=order["version"], type=ComponentType.APPLICATION, bom_ref="poolhouse",
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
    )  # fmt: skip
    for fields in order["components"]:
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=fields["sha256"])] if fields["sha256"] else []
        made.components.add(
            Component(
                name=fields["name"],
                version=fields["version"],
                type=ComponentType(fields["kind"]),
                purl=PackageURL.from_string(fields["purl"]),
                bom_ref=fields["purl"],
                licenses=[LicenseFactory().make_from_string(fields["license"])],
                hashes=hashes,
            )
        )
    made.register_dependency(made.metadata.component, made.components)
    print(JsonV1Dot6(made).output_as_string(indent=1))


if __name__ == "__main__":
    main()
