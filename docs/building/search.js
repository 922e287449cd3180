/* How the results of a search are ordered: guides before what is read for its own sake. */
const LATE = /^(_made\/(changelog|contributing|examples)|architecture|performance|semantics|survival|words|optimisation)$/;
const EARLY = /^(installation|errors|howto\/|_made\/tutorials|_made\/gallery$|inspection|attribution|files|lengths|onnx|jax|torch|tf1|scale)/;

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

/* `gg.scan` is graphgrad.scan in the index; American and British spellings find one another, and
   the words of other libraries find ours. */
const SPELLINGS = [
  [/\bgg\.select\b/g, "selector"],
  [/\bgg\./g, ""],
  [/\bgradient clipping\b|\bclip(ping)? (the )?gradients?\b/gi, "clip_norm"],
  [/\bdraw(ing)? (a |the )?graphs?\b/gi, "visualization"],
  [/\b(sav|stor|serializ|serialis)(e|es|ing) (a |the |my )?(model|graph)s?\b/gi, "files save"],
  [/\b(dynamic|unknown) (tensor )?shapes?\b|\b(tensor )?shapes? unknown\b/gi, "open lengths"],
  [/\blearning rates?( schedules?)?\b/gi, "optimizers"],
  [/^\s*error\s*$/i, "errors"],
  [/\bvisuali[sz](e|ed|es|ing|ation)\b/gi, "visualization"],
  [/quanti[sz]/gi, "quantis"],
  [/normali[sz]/gi, "normaliz"],
  [/lineari[sz]/gi, "linearis"],
  [/regulari[sz]/gi, "regularis"],
  [/behavior/gi, "behaviour"],
];

/* Not when the page is ready: by then Sphinx has searched for what stands in the address. */
if (typeof Search !== "undefined") {
  const parse = Search._parseQuery;
  Search._parseQuery = (query) =>
    parse(SPELLINGS.reduce((text, [from, to]) => text.replace(from, to), query));
}
