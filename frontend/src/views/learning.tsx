/** The loss over the steps with the cost of a constant guess, and the gradients of each layer. */

import { useRef } from "preact/hooks";
import { figure } from "../format";
import {
  type Axis,
  axisOf,
  layerBars,
  learningSentence,
  roundNumbers,
  share,
  tickText,
} from "../learning";
import { BUCKET_COLORS } from "../palette";
import type { Learning as Curves } from "../types";
import { useWidth } from "../ui/hooks";
import { Section } from "../ui/parts";

const HEIGHT = 240;
const LEFT = 58; // room for the numbers of the loss
const BOTTOM = 34;
const TOP = 10;
const RIGHT = 14;
const LABEL = 15; // between a line and the text below it
const DOTS_MOST = 40; // more points than this are a line

export function Learning({ learning }: { learning: Curves }) {
  const hasGradients = learning.gradients.length > 0;
  return (
    <Section id="learning" title="How it learned">
      <p>{learningSentence(learning)}</p>
      <div class={`learning-columns ${hasGradients ? "with-gradients" : ""}`}>
        <LossChart learning={learning} />
        {hasGradients && <Gradients learning={learning} />}
      </div>
    </Section>
  );
}

function LossChart({ learning }: { learning: Curves }) {
  const { loss, baseline, per } = learning;
  const holder = useRef<HTMLDivElement>(null);
  const width = useWidth(holder);
  const known = loss.flatMap(({ value }) => (value === null ? [] : [value]));
  const axis = axisOf(baseline === null ? known : [...known, baseline]);
  const [first, last] = [loss[0]?.at ?? 0, loss.at(-1)?.at ?? 1];
  const x = (at: number) =>
    LEFT + ((at - first) / Math.max(1, last - first)) * (width - LEFT - RIGHT);
  const y = (value: number) => TOP + (1 - share(axis, value)) * (HEIGHT - TOP - BOTTOM);
  // On the side of the line where the loss does not end, if there is room.
  const isBelow =
    baseline !== null && known.at(-1)! >= baseline && y(baseline) + LABEL < HEIGHT - BOTTOM;
  return (
    <div class="loss-chart" ref={holder}>
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={learningSentence(learning)}>
          <Axes {...{ axis, first, last, width, x, y, per }} />
          {baseline !== null && (
            <g class="loss-baseline">
              <line x1={LEFT} x2={width - RIGHT} y1={y(baseline)} y2={y(baseline)} />
              <text x={width - RIGHT} y={y(baseline) + (isBelow ? LABEL : -5)} text-anchor="end">
                a constant guess, {figure(baseline)}
              </text>
            </g>
          )}
          <path class="loss-line" d={pathOf(loss, x, y)} />
          {loss.length <= DOTS_MOST &&
            loss.map(
              ({ at, value }) =>
                value !== null && <circle class="loss-dot" r="2.5" cx={x(at)} cy={y(value)} />,
            )}
          <NotNumbers {...{ loss, x, per, width }} />
        </svg>
      )}
    </div>
  );
}

function Axes(props: {
  axis: Axis;
  first: number;
  last: number;
  width: number;
  x: (at: number) => number;
  y: (value: number) => number;
  per: string;
}) {
  const { axis, first, last, width, x, y, per } = props;
  const across = roundNumbers(first, Math.max(last, first + 1), width < 500 ? 4 : 8);
  return (
    <g class="axes">
      {axis.ticks.map((tick) => (
        <g key={tick}>
          <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
          <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
            {tickText(axis, tick)}
          </text>
        </g>
      ))}
      {across.filter(Number.isInteger).map((at) => (
        <text key={at} x={x(at)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
          {at.toLocaleString("en")}
        </text>
      ))}
      <text class="axis-name" x={LEFT} y={HEIGHT - 3}>
        {per}
      </text>
      <text class="axis-name" x={4} y={TOP + 4}>
        loss
      </text>
    </g>
  );
}

/** Values that are not numbers have no height; they are marked at the bottom of the chart. */
function NotNumbers(props: {
  loss: Curves["loss"];
  x: (at: number) => number;
  per: string;
  width: number;
}) {
  const lost = props.loss.filter(({ value }) => value === null);
  const foot = HEIGHT - BOTTOM - 6;
  if (lost.length === 0) return null;
  const from = props.x(lost[0]!.at);
  return (
    <g class="not-numbers">
      <path class="lost-from" d={`M${from} ${TOP}V${foot - 5}`} />
      {lost.map(({ at }) => (
        <path key={at} d={`M${props.x(at) - 3} ${foot - 3}l6 6m0 -6l-6 6`} />
      ))}
      <text {...labelBeside(from, props.width)} y={TOP + 10}>
        NaN or infinite from {props.per} {lost[0]!.at}
      </text>
    </g>
  );
}

/** To the side of a line that has more room. */
function labelBeside(x: number, width: number) {
  return x < width / 2
    ? { x: x + 6, "text-anchor": "start" as const }
    : { x: x - 6, "text-anchor": "end" as const };
}

function pathOf(
  loss: Curves["loss"],
  x: (at: number) => number,
  y: (value: number) => number,
): string {
  let isDrawing = false;
  return loss
    .map(({ at, value }) => {
      if (value === null) {
        isDrawing = false;
        return "";
      }
      const command = isDrawing ? "L" : "M";
      isDrawing = true;
      return `${command}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join("");
}

function Gradients({ learning }: { learning: Curves }) {
  return (
    <div>
      <h3>Gradients by layer</h3>
      <p class="faint">
        Median norm of each layer's gradient, from the first layer to the last, on a logarithmic
        scale.
      </p>
      <div
        class="scrolling layers-scroll"
        tabIndex={0}
        role="region"
        aria-label="Gradients by layer"
      >
        <table class="layer-table">
          <tbody>
            {layerBars(learning).map(({ layer, norm, width, isLost }) => (
              <tr key={layer}>
                <th scope="row" title={layer}>
                  {layer}
                </th>
                <td class="layer-bar">
                  <span style={{ width: `${100 * width}%`, background: BUCKET_COLORS.numerics }} />
                </td>
                <td class="figures">{norm === null ? (isLost ? "NaN" : "0") : figure(norm)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
