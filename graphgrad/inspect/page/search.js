// Search over names, ops, regions, rules and the scopes drawn around. `op:`, `name:`, `region:`, `rule:`
// and `scope:` narrow it. What is called so comes first, then what has it in its name.
const FIELDS = ["name", "op", "region", "rule", "scope"];

function searcher(scene) {
  const regions = data.regions.map((r) => r.title.toLowerCase());
  const calls = data.calls.map((c) => c.title.toLowerCase());
  const fields = {
    name: (n) => nameOf(n).toLowerCase(),
    op: (n) => text(n, "op").toLowerCase(),
    region: (n) => regionsAround(n).map((r) => regions[r]).join("\n"),
    rule(n) {
      const call = originOf(n)?.call;
      const named = regionsAround(n).map((r) => data.regions[r].name.toLowerCase());
      return [call === undefined ? "" : calls[call], text(n, "stamp").toLowerCase(), text(n, "tensors").toLowerCase(), ...named].join("\n");
    },
  };
  const scopes = [];
  scene.boxes.forEach(({ parent, kind, title }) => {
    scopes.push(`${parent < 0 ? "" : scopes[parent]}${kind === "scope" ? title.toLowerCase() : ""}`);
  });
  const shared = (n) => kindOf(n) === "constant" && table.name[n] < 0; // drawn in many boxes
  fields.scope = (n) => (shared(n) ? "" : scopes[scene.at.get(n).box]);
  return (query) => {
    const narrow = /^(name|op|region|rule|scope):\s*/.exec(query);
    const wanted = (narrow ? query.slice(narrow[0].length) : query).trim().toLowerCase();
    if (!wanted) return [];
    const where = narrow ? [narrow[1]] : FIELDS;
    const found = scene.nodes.filter((n) => where.some((field) => fields[field](n).includes(wanted)));
    const far = (n) => (fields.name(n).endsWith(wanted) ? 0 : fields.name(n).includes(wanted) ? 1 : 2);
    return found.sort((a, b) => far(a) - far(b));
  };
}
