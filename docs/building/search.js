/* How the results of a search are ordered: guides before what is read for its own sake. */
const LATE = /^(_made\/(changelog|contributing|examples)|architecture|performance|semantics|survival|words|optimisation)$/;
const EARLY = /^(installation|howto\/|_made\/tutorials|_made\/gallery$|inspection|attribution|files|lengths|onnx|jax|torch|tf1|scale)/;

var Scorer = {
  score: ([docname, , , , score]) =>
    score + (LATE.test(docname) ? -5 : 0) + (EARLY.test(docname) ? 1 : 0),
  objNameMatch: 30,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 24,
  partialTitle: 9,
  term: 5,
  partialTerm: 2,
};

/* `gg.scan` is graphgrad.scan in the index; American and British spellings find one another. */
const SPELLINGS = [
  [/\bgg\./g, ""],
  [/\bvisuali[sz](e|ed|es|ing|ation)\b/gi, "visualization"],
  [/quanti[sz]/gi, "quantis"],
  [/normali[sz]/gi, "normaliz"],
  [/lineari[sz]/gi, "linearis"],
  [/regulari[sz]/gi, "regularis"],
  [/behavior/gi, "behaviour"],
];

document.addEventListener("DOMContentLoaded", () => {
  const parse = Search._parseQuery;
  Search._parseQuery = (query) =>
    parse(SPELLINGS.reduce((text, [from, to]) => text.replace(from, to), query));
});
