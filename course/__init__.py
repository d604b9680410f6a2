"""The course: lessons as text, what they draw and train with, and the build that makes notebooks of them."""
