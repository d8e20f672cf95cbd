"""For the one who searches: from the naive scheme to rank 23, with proof and provenance."""

import lcma

result = lcma.find("3x3x3", rank=23, seed=1, seconds=60)
for found in result.finds:
    scheme = found.scheme
    print(
        f"{scheme!r} {scheme.digest[:12]}: {'ternary' if scheme.ternary else 'integer'} coefficients, "
        f"{lcma.schemes_db.costs.additions(scheme)} additions, {lcma.program_of(scheme).additions} with shared sums"
    )
    print("proven:", found.certificate.methods, "over", found.certificate.ring)
    print(
        "made by:", scheme.provenance.relation, "of", found.origin.provenance.relation, "seed", scheme.provenance.seed
    )

# A scheme is easily turned and composed; what comes out is proven like anything else.
composed = lcma.tensor(lcma.resolve("strassen")[0], result.best)
print(composed, "valid:", lcma.check(composed).ok)
